// Package jobcmd has the commands of jobs: they submit, list, show, watch, change and delete jobs of a cluster.
package jobcmd

type Cmd struct {
	Submit submitCmd   `cmd:"" help:"Submit a job and return at once."`
	List   jobListCmd  `cmd:"" help:"List jobs."`
	Show   jobShowCmd  `cmd:"" help:"Describe a job."`
	Watch  jobWatchCmd `cmd:"" help:"Show a job's progress until it ends, then its result."`

	Curve       jobCurveCmd       `cmd:"" help:"Show a job's losses step by step, as text, CSV or JSON."`
	Predictions jobPredictionsCmd `cmd:"" help:"Write the predictions of a done job for the samples that it held out."`

	Share  jobShareCmd  `cmd:"" help:"Let all users of a cluster read the models and predictions of one of your jobs."`
	Pause  jobPauseCmd  `cmd:"" help:"Pause a job; its last checkpoint is kept."`
	Resume jobResumeCmd `cmd:"" help:"Resume a paused job from its last checkpoint."`
	Cancel jobCancelCmd `cmd:"" help:"Cancel a job; it will have no model."`
	Delete jobDeleteCmd `cmd:"" help:"Delete jobs that have ended, with their models."`
	Prune  jobPruneCmd  `cmd:"" help:"Delete jobs that ended before a certain time."`
}
