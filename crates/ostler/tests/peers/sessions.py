"""Runs commands of standard input on stored sessions with the official SDK; prints one JSON value for each."""

import json
import sys

import claude_agent_sdk as sdk


def info(session):
    return {
        "id": session.session_id,
        "summary": session.summary,
        "last_modified": session.last_modified,
        "file_size": session.file_size,
        "custom_title": session.custom_title,
        "first_prompt": session.first_prompt,
        "git_branch": session.git_branch,
        "cwd": session.cwd,
        "tag": session.tag,
        "created_at": session.created_at,
    }


def message(entry):
    return {"type": entry.type, "uuid": entry.uuid, "session": entry.session_id, "message": entry.message}


def run(name, args):
    if name == "list":
        return [info(session) for session in sdk.list_sessions(**args)]
    if name == "info":
        found = sdk.get_session_info(**args)
        return found and info(found)
    if name == "messages":
        return [message(entry) for entry in sdk.get_session_messages(**args)]
    if name == "rename":
        return sdk.rename_session(**args)
    if name == "tag":
        return sdk.tag_session(**args)
    if name == "delete":
        return sdk.delete_session(**args)
    if name == "fork":
        return sdk.fork_session(**args).session_id
    raise ValueError(name)


for line in sys.stdin:
    name, args = json.loads(line)
    try:
        answer = run(name, args)
    except (ValueError, FileNotFoundError) as error:
        answer = {"error": type(error).__name__}
    print(json.dumps(answer), flush=True)
