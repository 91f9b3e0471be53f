#!/bin/sh
# Checks the subjects of a change's commits: imperative, at most 72 characters. Prints
# `commit: problem: subject` for each problem, and then exits with 1.
#
# `check-subjects.sh [BASE]` checks the commits since BASE, else since that of the variable BASE, else
# since origin/main. If there is no such commit, as in a shallow clone, or nothing since, it checks the
# last commit alone and says so. Commits before the change are never checked, nor are merges.
set -eu
LC_ALL=C
export LC_ALL

git rev-parse -q --verify HEAD >/dev/null 2>&1 || {
  echo "subjects: no commits here, so none were checked"
  exit 0
}
base=${1:-${BASE:-origin/main}}
if ! git merge-base "$base" HEAD >/dev/null 2>&1; then
  reason="$base is not in this clone"
elif [ "$(git rev-list --count --no-merges "$base..HEAD")" = 0 ]; then
  reason="nothing is ahead of $base"
else
  reason=
fi
if [ -n "$reason" ]; then
  checked="only the last commit was checked ($reason)"
  set -- --no-walk HEAD
else
  checked="those since $base were checked"
  set -- "$base..HEAD"
fi

# The first word decides; these verbs only look like other forms.
found=$(git log --no-merges --format='%h %s' "$@" | awk '
  function report(problem) { print commit ": " problem ": " subject }
  BEGIN {
    split("Embed Exceed Feed Heed Need Proceed Seed Shed Speed Succeed " \
      "Bring Ping Ring String Alias Bias Canvas Focus", words, " ")
    for (i in words) isVerb[words[i]] = 1
    split("A An The This That These Those Each Every Some No One It", words, " ")
    for (i in words) isOther[words[i]] = 1
  }
  {
    commit = $1
    word = $2
    subject = $0
    sub(/^[^ ]+ /, "", subject)
    # The commit that CI makes of a pull request; in a shallow clone it does not count as a merge.
    if (subject ~ /^Merge [0-9a-f]+ into [0-9a-f]+$/) next
    characters = subject
    # A character of several bytes counts by its first one.
    gsub(/[\200-\277]/, "", characters)
    if (length(characters) > 72) report(length(characters) " characters, at most 72")
    if (word !~ /^[A-Z][a-z-]*$/ || word in isOther ||
        (word ~ /(ed|ing|[^s]s)$/ && !(word in isVerb)))
      report("does not begin with an imperative, such as Add")
    if (subject ~ /\.$/) report("ends with a period")
  }')
[ -z "$found" ] || {
  echo "$found"
  echo "git rebase -i, or git commit --amend for the last one, rewords them; $checked." >&2
  exit 1
}
echo "subjects: no findings; $checked"
