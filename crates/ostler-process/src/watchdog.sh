# Outlives its parent for a moment and ends what the parent left running. $1 marks everything the parent started.
# Reads lines until the parent is gone: "+ GROUP NUMBER" a child, "- GROUP NUMBER" it is over,
# "terminate GROUP NUMBER" and "close GROUP NUMBER" end a child without haste, "tracked ID:START …" lists what the children
# have started, each time all of it. "folder PATH." is a folder to clean up with the program of "sweeper PATH.", "clean PATH."
# needs that no longer.
trap '' HUP INT TERM
children=' '
newline='
'
folders=$newline
sweeper=

# A process that is just replacing its program shows no environment, so only several empty looks count.
sweep() {
  tries=0
  empty=0
  while [ "$tries" -lt 100 ] && [ "$empty" -lt 3 ]; do
    found=$(grep -lsF -e "$1" /proc/[0-9]*/environ)
    empty=$((empty + 1))
    [ -z "$found" ] || empty=0
    for file in $found; do
      file=${file#/proc/}
      kill -s KILL "${file%/environ}"
    done
    tries=$((tries + 1))
    sleep 0.02
  done
}

finish() {
  kill -s KILL -- "-$1"
  sweep "$marker$2;"
}

# Waits for the end of a group for about two seconds.
over() {
  waited=0
  while kill -s 0 -- "-$1"; do
    [ "$waited" -lt 20 ] || return 1
    waited=$((waited + 1))
    sleep 0.1
  done
}

gently() {
  if [ "$1" = close ] && ! over "$2"; then
    kill -s TERM -- "-$2"
  fi
  over "$2"
  finish "$2" "$3"
}

# Reads the fields of a process's state into the variables that matter.
look_at() {
  read -r stat <"/proc/$1/stat" || return 1
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  parent=$2 session=$4 started=${20}
}

# Ends what was tracked and what that has started since, unless its number belongs to another process by now.
tracked() {
  ids=' '
  for process in $tracked; do
    if look_at "${process%:*}" && [ "$started" = "${process#*:}" ]; then
      ids="$ids${process%:*} "
    fi
  done
  before=
  while [ "$ids" != "$before" ]; do
    before=$ids
    for folder in /proc/[0-9]*; do
      id=${folder#/proc/}
      look_at "$id" || continue
      case $ids in
      *" $id "*) ;;
      *" $parent "* | *" $session "*) ids="$ids$id " ;;
      esac
    done
  done
  for id in $ids; do
    kill -s KILL "$id"
  done
}

# Has another program clean up the folders.
clean_up() {
  [ "$folders" != "$newline" ] || return
  IFS=$newline
  set -f
  # shellcheck disable=SC2086
  "$sweeper" __sweep $folders
}

marker=$1
tracked=
while read -r verb rest; do
  case $verb in
  tracked)
    tracked=$rest
    continue
    ;;
  sweeper)
    # A dot follows each path, because spaces at the end of a line would be lost.
    sweeper=${rest%.}
    continue
    ;;
  folder)
    folders="$folders${rest%.}$newline"
    continue
    ;;
  clean)
    path=$newline${rest%.}$newline
    case $folders in
    *"$path"*) folders="${folders%%"$path"*}$newline${folders#*"$path"}" ;;
    esac
    continue
    ;;
  esac
  group=${rest%% *} number=${rest#* }
  case $verb in
  +) children="$children$group:$number " ;;
  *)
    case $children in
    *" $group:$number "*)
      children="${children%%" $group:$number "*} ${children#*" $group:$number "}"
      ;;
    esac
    ;;
  esac
  case $verb in
  terminate | close) gently "$verb" "$group" "$number" </dev/null & ;;
  esac
done
[ -z "$tracked" ] || tracked
for child in $children; do
  finish "${child%:*}" "${child#*:}"
done
wait
sweep "$marker"
clean_up
