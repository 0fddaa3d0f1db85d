/** Suggestions for new users; the offline model understands them, like every other. */
const TRY = ["list the files here", 'write "hello world" to notes.txt', "ask me which colour I like: red, green or blue"];

export function Welcome({ onTry }: { onTry: (text: string) => void }) {
  return (
    <div class="empty">
      <h1>What should the agent do?</h1>
      <p>The agent works in the server's folder. It asks before it changes anything, here and in the inbox.</p>
      <ul class="try">
        {TRY.map((text) => (
          <li key={text}><button type="button" onClick={() => onTry(text)}>{text}</button></li>
        ))}
      </ul>
    </div>
  );
}
