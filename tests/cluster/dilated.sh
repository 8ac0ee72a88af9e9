#!/usr/bin/env bash
exec python3 "$(dirname "$0")/dilated.py" "$@"  # whose beginning says what it does
