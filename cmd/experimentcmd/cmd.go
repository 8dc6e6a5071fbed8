// Package experimentcmd has the commands of experiments, which run in this process or on a cluster.
package experimentcmd

// Cmd is `coppice experiment`.
type Cmd struct {
	Run    runCmd    `cmd:"" help:"Run every method of a spec on every dataset and fold, on a cluster or with --local in this process."`
	List   listCmd   `cmd:"" help:"List the experiments of a cluster."`
	Show   showCmd   `cmd:"" help:"Show the progress of an experiment, and which runs failed and why."`
	Watch  watchCmd  `cmd:"" help:"Show the progress of an experiment on a cluster until it ends, then print its report."`
	Report reportCmd `cmd:"" help:"Write the report of an experiment: measures, tests, ranks, times."`
	Extend extendCmd `cmd:"" help:"Submit the new runs of a spec to its experiment on a cluster."`
	Retry  retryCmd  `cmd:"" help:"Submit the runs of an experiment again that failed or have no result."`
	Share  shareCmd  `cmd:"" help:"Let all users of a cluster read the results of one of your experiments."`
	Pause  pauseCmd  `cmd:"" help:"Pause an experiment; runs that have ended are kept."`
	Resume resumeCmd `cmd:"" help:"Let a paused experiment go on."`
	Cancel cancelCmd `cmd:"" help:"Cancel the jobs of an experiment; the results of runs that have ended are kept."`
	Delete deleteCmd `cmd:"" help:"Delete an ended experiment from a cluster."`
}
