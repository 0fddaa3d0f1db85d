import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { SkillView } from "../parts/SkillView";
import { TaskForm } from "../parts/TaskForm";
import { TaskLog } from "../parts/TaskLog";
import { complain } from "../state/app";
import { listen } from "../state/news";
import { link } from "../state/route";
import type { Skill, SkillList, Task } from "../types";
import { ago, lasted } from "../text/say";

export function Tasks({ id }: { id?: string }) {
  const [skills, setSkills] = useState<SkillList | undefined>(undefined);
  const [tasks, setTasks] = useState<Task[] | undefined>(undefined);
  const load = () => void api.tasks().then((it) => setTasks(it.sort((a, b) => b.created - a.created))).catch(complain);
  useEffect(() => {
    void api.skills().then(setSkills).catch(complain);
    load();
    // A changed run may change a task.
    return listen((message) => message.type === "run" && load());
  }, []);
  const skill = skills?.items.find((it) => it.id === id || it.name === id);
  return (
    <main class="page" id="main">
      <header class="bar"><h1>{skill ? skill.name : "Tasks"}</h1>{skill && <a href="#/tasks">All skills</a>}</header>
      {skill ? <TaskForm key={skill.id} skill={skill} onDone={load} /> : <Skills list={skills} />}
      {skill && <SkillView key={skill.id} id={skill.id} />}
      <History tasks={skill ? tasks?.filter((it) => it.agentId === skill.id || it.agentId === skill.name) : tasks} load={load} />
    </main>
  );
}

function Skills({ list }: { list: SkillList | undefined }) {
  if (!list) return <p class="note" role="status">Loading…</p>;
  return (
    <section aria-label="Skills">
      {list.items.length === 0 && (
        <div class="empty">
          <h2>No skills yet</h2>
          <p>A skill is a folder with a file <code>SKILL.md</code>. Start the server with <code>--skills FOLDER</code> to list skills here.</p>
        </div>
      )}
      {list.problems.map((problem) => <p key={problem} class="problem">{problem}</p>)}
      <ul class="tiles">
        {list.items.map((skill: Skill) => (
          <li key={skill.id}>
            <a href={link("tasks", skill.id)}>
              <b>{skill.name}</b>
              <span>{skill.description}</span>
              <span class="hint">{skill.source}{skill.inputs.length > 0 && ` · ${skill.inputs.length} parameters`}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function History({ tasks, load }: { tasks: Task[] | undefined; load: () => void }) {
  const attempt = (doing: Promise<unknown>) => void doing.then(load).catch(complain);
  if (!tasks || tasks.length === 0) return null;
  return (
    <section aria-labelledby="history">
      <h2 id="history">Past tasks</h2>
      <ul class="rows">
        {tasks.map((task) => (
          <li key={task.id} data-task={task.id}>
            <span class="what">
              <b>{task.execution ? <a href={link("chat", task.execution.session)}>{task.name}</a> : task.name}</b>
              <span class="hint">
                {task.agentId} · {ago(task.created)}{task.duration !== undefined && ` · took ${lasted(task.duration)}`}
              </span>
              {task.error && <span class="problem">{task.error.message}</span>}
            </span>
            <span class={`badge ${task.status}`}>{task.status}</span>
            {["running", "waiting", "queued"].includes(task.status)
              ? <button type="button" class="danger" onClick={() => attempt(api.cancelTask(task.id))}>Stop</button>
              : <button type="button" onClick={() => attempt(api.executeTask(task.id))}>Run again</button>}
            <button type="button" class="quiet" onClick={() => attempt(api.removeTask(task.id))}>Delete</button>
            {task.execution && <TaskLog key={task.execution.run} session={task.execution.session} name={task.name} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
