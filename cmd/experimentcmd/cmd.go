// Package experimentcmd has the commands of experiments, which run in this process or on a cluster.
package experimentcmd

type Cmd struct {
	Run    experimentRunCmd    `cmd:"" help:"Run every method of a spec on every dataset and fold, on a cluster or with --local in this process."`
	List   experimentListCmd   `cmd:"" help:"List the experiments of a cluster."`
	Show   experimentShowCmd   `cmd:"" help:"Show the progress of an experiment, and which runs failed and why."`
	Watch  experimentWatchCmd  `cmd:"" help:"Show the progress of an experiment on a cluster until it ends, then print its report."`
	Report experimentReportCmd `cmd:"" help:"Write the report of an experiment: measures, tests, ranks, times."`
	Extend experimentExtendCmd `cmd:"" help:"Submit the new runs of a spec to its experiment on a cluster."`
	Retry  experimentRetryCmd  `cmd:"" help:"Submit the runs of an experiment again that failed or have no result."`
	Share  experimentShareCmd  `cmd:"" help:"Let all users of a cluster read the results of one of your experiments."`
	Pause  experimentPauseCmd  `cmd:"" help:"Pause an experiment; runs that have ended are kept."`
	Resume experimentResumeCmd `cmd:"" help:"Let a paused experiment go on."`
	Cancel experimentCancelCmd `cmd:"" help:"Cancel the jobs of an experiment; the results of runs that have ended are kept."`
	Delete experimentDeleteCmd `cmd:"" help:"Delete an ended experiment from a cluster."`
}
