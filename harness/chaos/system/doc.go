// Package system has what the suite asks of the operating system and only Linux gives: the limits
// of a process that runs, who dialled, and a file system without its disk. It imports nothing of
// Coppice, so that it is quickly built for another system.
package system
