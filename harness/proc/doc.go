// Package proc starts a real cluster of processes on this machine: coordinators
// and workers on free loopback ports, or on hosts of the caller's (Config.Hosts), each
// with its own disk and log file. It
// serves `coppice quickstart` and tests, which may kill, stop and restart each
// process. Children end when the process that started them does, however that
// ends.
package proc
