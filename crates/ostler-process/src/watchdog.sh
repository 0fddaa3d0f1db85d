# Outlives its parent for a moment and ends what the parent left running. $1 marks everything the parent started.
# Reads lines until the parent is gone: "+ GROUP NUMBER" a child, "- GROUP NUMBER" it is over,
# "terminate GROUP NUMBER" and "close GROUP NUMBER" end a child without haste.
trap '' HUP INT TERM
children=' '

sweep() {
  tries=0
  while [ "$tries" -lt 100 ]; do
    found=$(grep -lsF -e "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || return 0
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

marker=$1
while read -r verb group number; do
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
for child in $children; do
  finish "${child%:*}" "${child#*:}"
done
wait
sweep "$marker"
