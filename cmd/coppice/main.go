// Command coppice trains label distribution learning models, in one process or
// on a cluster: `coppice --help` lists what it does.
package main

import "github.com/coppice-ldl/coppice/cmd/commands"

func main() { commands.Main() }
