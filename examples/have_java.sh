#!/bin/sh
# Ends with 0 if there is a Java 17 or newer that Spark can be started with.
for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" java; do
    [ -n "$java" ] || continue
    major=$("$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
    [ -n "$major" ] && [ "$major" -ge 17 ] 2>/dev/null && exit 0
done
exit 1
