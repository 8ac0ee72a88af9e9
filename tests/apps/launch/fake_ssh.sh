#!/bin/sh
# Stands in for ssh: runs the command here. Some hosts are special:
#   absent    cannot be reached
#   noisy     whose login shell prints something first
#   rude      whose login shell clears the screen
# With FAKE_SSH_LOG set, what it was called with is appended there.
host=$1
shift
if [ -n "$FAKE_SSH_LOG" ]; then echo "$$ $host $*" >>"$FAKE_SSH_LOG"; fi
case $host in
  absent) echo "connect to host $host: No route to host" >&2; exit 255 ;;
  rude) printf '\033[2J\033]0;owned\007\r\n'; printf 'away \033[3J\r\n' >&2 ;;
  noisy) echo "Welcome to $host"; echo "quota exceeded" >&2 ;;
esac
exec sh -c "$*"
