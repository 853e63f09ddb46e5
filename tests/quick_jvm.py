"""Options of the JVMs that tests start: each of them lives for a few small queries.

The first compiler is enough for them; the second one would take more than half of the time, beside
them. The room for its code would be too small without the second one: old code is thrown away, and
compiled again.
"""

QUICK_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    " -XX:ReservedCodeCacheSize=240m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
