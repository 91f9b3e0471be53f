#!/bin/sh
# Checks docs/psst-coverage.md, or another page of its form: each file and test that it names
# exists, each line is well formed, and the counts above the tables are those of the lines. Prints
# `page:line: problem` for each problem, and then exits with 1.
#
# A test is named by its title in Swift, its function in Python, and the name or the sentence of its
# cases in JSON.
set -eu
page=docs/psst-coverage.md
[ $# = 0 ] || page=$(realpath "$1")
cd "$(dirname "$0")/../../.."

awk '
function fail(problem) {
  printf "%s:%d: %s\n", FILENAME, FNR, problem
  failures++
}

# Reads the tests of a file, once; returns whether the file exists.
function load(path,    line, isTitleNext) {
  if (path in exists) return exists[path]
  exists[path] = system("test -f " path) == 0
  if (!exists[path]) return 0
  while ((getline line < path) > 0) {
    if (path ~ /\.swift$/) {
      if (line ~ /^ *@Test\("/) addQuoted(path, line)
      else if (isTitleNext && line ~ /^ *"/) addQuoted(path, line)
      isTitleNext = line ~ /^ *@Test\($/
    } else if (path ~ /\.py$/) {
      if (line ~ /^(async )?def test_/) {
        sub(/^(async )?def /, "", line)
        sub(/\(.*/, "", line)
        tests[path, line] = 1
      }
    } else if (path ~ /\.json$/) {
      while (match(line, /"(name|sentence)": "/)) {
        line = substr(line, RSTART + RLENGTH)
        addUpToQuote(path, line)
      }
    }
  }
  close(path)
  return 1
}

function addQuoted(path, line) {
  sub(/^[^"]*"/, "", line)
  addUpToQuote(path, line)
}

function addUpToQuote(path, line) {
  sub(/".*/, "", line)
  tests[path, line] = 1
}

# One place: `file`, or `file` "test".
function checkPlace(place,    path, title) {
  if (place !~ /^`[^`]+`( "[^"]+")?$/) return fail("malformed place: " place)
  path = title = place
  sub(/^`/, "", path)
  sub(/`.*/, "", path)
  # Nothing else reaches the shell.
  if (path !~ /^[A-Za-z0-9_][A-Za-z0-9_.+\/-]*$/ || path ~ /\.\./)
    return fail("not a path of the repository: " path)
  if (!load(path)) return fail("no such file: " path)
  if (!sub(/^[^"]*"/, "", title)) {
    if (path !~ /^Tests\//) hasCode = 1
    return
  }
  sub(/"$/, "", title)
  if (path !~ /^Tests\//) return fail("not a test: " path)
  if (!((path, title) in tests)) return fail("no such test in " path ": " title)
  hasTest = 1
}

function checkLine(    cells, count, places, i) {
  count = split($0, cells, "|")
  if (count != 4 || cells[4] != "" || cells[2] !~ /^ [^ ].* $/ || cells[3] !~ /^ [^ ].* $/)
    return fail("malformed line: a line is | what is asked | where it stands |")
  if (cells[2] in asked) fail("asked twice, also in line " asked[cells[2]])
  asked[cells[2]] = FNR
  sub(/^ /, "", cells[3])
  sub(/ $/, "", cells[3])
  if (cells[3] ~ /^not yet/) {
    notYet++
    if (cells[3] !~ /^not yet: ./) fail("say what is missing: not yet: …")
  } else if (cells[3] ~ /^the phone\047s/) {
    phones++
    if (cells[3] !~ /^the phone\047s(: .+)?$/) fail("malformed line: the phone\047s, or the phone\047s: …")
  } else {
    stands++
    hasCode = hasTest = 0
    count = split(cells[3], places, " · ")
    for (i = 1; i <= count; i++) checkPlace(places[i])
    if (!hasCode) fail("no code is named")
    if (!hasTest) fail("no test is named")
  }
}

/^\|/ {
  if (tableLine == 0 && $0 != "| what the app asks | where it stands |") fail("malformed head of a table")
  if (tableLine == 1 && $0 != "|---|---|") fail("malformed head of a table")
  if (tableLine++ > 1) checkLine()
  next
}

{ tableLine = 0 }

/^[0-9]+ stand, [0-9]+ not yet, [0-9]+ the phone\047s/ {
  counted = FNR
  said = $1 + 0
  saidNotYet = $3 + 0
  saidPhones = $6 + 0
}

END {
  if (!counted) fail("no counts: N stand, N not yet, N the phone\047s")
  else if (said != stands || saidNotYet != notYet || saidPhones != phones) {
    FNR = counted
    fail("wrong counts: the lines are " stands + 0 " stand, " notYet + 0 " not yet, " phones + 0 " the phone\047s")
  }
  exit failures > 0
}
' "$page"
