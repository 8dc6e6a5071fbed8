// Package jobcmd has the commands of jobs: they submit, list, show, watch, change and delete jobs of a cluster.
package jobcmd

// Cmd is `coppice job`.
type Cmd struct {
	Submit submitCmd `cmd:"" help:"Submit a job and return at once."`
	List   listCmd   `cmd:"" help:"List jobs."`
	Show   showCmd   `cmd:"" help:"Describe a job."`
	Watch  watchCmd  `cmd:"" help:"Show a job's progress until it ends, then its result."`

	Curve       curveCmd       `cmd:"" help:"Show a job's losses step by step, as text, CSV or JSON."`
	Predictions predictionsCmd `cmd:"" help:"Write the predictions of a done job for the samples that it held out."`

	Share  shareCmd  `cmd:"" help:"Let all users of a cluster read the models and predictions of one of your jobs."`
	Pause  pauseCmd  `cmd:"" help:"Pause a job; its last checkpoint is kept."`
	Resume resumeCmd `cmd:"" help:"Resume a paused job from its last checkpoint."`
	Cancel cancelCmd `cmd:"" help:"Cancel a job; it will have no model."`
	Delete deleteCmd `cmd:"" help:"Delete jobs that have ended, with their models."`
	Prune  pruneCmd  `cmd:"" help:"Delete jobs that ended before a certain time."`
}
