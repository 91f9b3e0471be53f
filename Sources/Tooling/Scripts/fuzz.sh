#!/bin/sh
# Gives Firestore's endpoints inputs for MINUTES_OF_FUZZING, and keeps those that reach new code.
set -eu

kept=Tests/FuzzTargets/corpus.base64
folder=.build/fuzz
fuzz=$folder/release/Fuzz

echo "Building the endpoints with libFuzzer below $folder (first time: about ten minutes) ..."
HEARTH_ALL_TARGETS=1 swift build -c release --scratch-path $folder --product Fuzz -Xswiftc -DFUZZING \
  -Xswiftc -sanitize=fuzzer -Xswiftc -use-ld=lld -Xlinker --strip-debug

rm -rf $folder/corpus $folder/merged
mkdir -p $folder/found $folder/corpus $folder/merged
number=0
while read -r input; do
  number=$((number + 1))
  echo "$input" | base64 -d > $folder/corpus/$number
done < $kept

$fuzz -max_total_time=$((MINUTES_OF_FUZZING * 60)) -max_len=2048 -timeout=20 -rss_limit_mb=4096 \
  -reload=0 -print_final_stats=1 -dict=Tests/Fuzz/words.dict -artifact_prefix=$folder/ \
  $folder/found $folder/corpus
# As few inputs as reach all the code that all of them reach.
$fuzz -set_cover_merge=1 -use_counters=0 -max_len=2048 \
  $folder/merged $folder/corpus $folder/found
for input in "$folder"/merged/*; do
  base64 < "$input" | tr -d '\n'
  echo
done | sort > $kept
echo "$(wc -l < $kept) inputs in $kept"
