// Prints results like `cargo test`, so that they can be counted.

interface Case {
  name: string;
  fullName: string;
  module: { relativeModuleId: string };
  result(): { state: string; errors?: readonly { message: string; stack?: string }[] };
}

export default class Reporter {
  private passed = 0;
  private failed = 0;

  onTestCaseResult(test: Case): void {
    const { state, errors } = test.result();
    const name = `web::${test.module.relativeModuleId.replace(/^test\/|\.test\.tsx?$/g, "")}::${test.fullName.replaceAll(" ", "_")}`;
    // A skipped test has proved nothing.
    if (state === "passed") this.passed += 1;
    else this.failed += 1;
    console.log(`test ${name} ... ${state === "passed" ? "ok" : "FAILED"}`);
    for (const error of errors ?? []) console.error(error.stack ?? error.message);
  }

  onTestRunEnd(_: unknown, errors: readonly { message: string; stack?: string }[]): void {
    for (const error of errors) console.error(error.stack ?? error.message);
    this.failed += errors.length;
    console.log(`test result: ${this.failed ? "FAILED" : "ok"}. ${this.passed} passed; ${this.failed} failed`);
  }
}
