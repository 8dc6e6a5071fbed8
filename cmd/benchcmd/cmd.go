// Package benchcmd has the commands that start clusters of their own: benchmarks, injection of faults, and quickstart.
package benchcmd

// Cmd is `coppice bench`.
type Cmd struct {
	LDLF    benchLDLFCmd    `cmd:"" name:"ldlf" help:"Measure gradient steps and leaf updates of ldlf on one core."`
	Network benchNetworkCmd `cmd:"" help:"Measure network layers, and ldlf on top of a network, on one core."`
	Forest  benchForestCmd  `cmd:"" help:"Measure training and prediction of structrf on one core."`
	Boost   benchBoostCmd   `cmd:"" help:"Measure training of ldlboost on one core."`
	Cluster benchClusterCmd `cmd:"" default:"withargs" help:"Compare training on a cluster with training in one process (default)."`
}

// Help implements kong's longer help.
func (Cmd) Help() string {
	return `ldlf, network, forest and boost measure one core of this machine. coppice bench alone is coppice bench cluster.`
}
