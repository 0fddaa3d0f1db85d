import type { Todo } from "../agui/items";

const MARKS: Record<string, string> = { completed: "✓", in_progress: "▸" };

export function Todos({ todos }: { todos: Todo[] }) {
  const done = todos.filter((todo) => todo.status === "completed").length;
  return (
    <section class="todos" aria-label={`To do: ${done} of ${todos.length} done`}>
      <ul>
        {todos.map((todo, index) => (
          <li key={index} class={todo.status}>
            <span aria-hidden="true">{MARKS[todo.status] ?? "○"}</span>
            <span>{todo.status === "in_progress" ? (todo.activeForm ?? todo.content) : todo.content}</span>
            <span class="unseen">{todo.status.replace("_", " ")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
