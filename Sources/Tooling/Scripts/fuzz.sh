#!/bin/sh
# Gives Firestore's doors inputs for MINUTES_OF_FUZZING, and keeps those that reach new code.
set -eu

corpus=Tests/FuzzedDoors/Corpus
folder=.build/fuzz
found=$folder/found

echo "Building the doors with libFuzzer below $folder (first time: about ten minutes) ..."
HEARTH_FUZZ=1 swift build -c release --scratch-path $folder --product Fuzz \
  -Xswiftc -sanitize=fuzzer -Xswiftc -use-ld=lld -Xlinker --strip-debug

mkdir -p $found
fuzz=$folder/release/Fuzz
$fuzz -max_total_time=$((MINUTES_OF_FUZZING * 60)) -max_len=2048 -timeout=20 -rss_limit_mb=4096 \
  -reload=0 -print_final_stats=1 -artifact_prefix=$folder/ $found $corpus
# The smallest set of inputs that covers what all of them do.
rm -rf $folder/merged
mkdir $folder/merged
$fuzz -merge=1 -max_len=2048 $folder/merged $corpus $found
rm -f $corpus/*
cp $folder/merged/* $corpus/
echo "$(ls $corpus | wc -l) inputs in $corpus"
