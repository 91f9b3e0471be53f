#!/bin/sh
# Runs a command and adds a line with its duration to .build/phases: `phase.sh NAME COMMAND ...`.
set -u
name=$1
shift

began=$(date +%s)
"$@"
status=$?
seconds=$(($(date +%s) - began))
mkdir -p .build
printf '%4d:%02d  %s\n' $((seconds / 60)) $((seconds % 60)) "$name" >>.build/phases
exit $status
