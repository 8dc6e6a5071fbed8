package protocol

// IdleReason says in a word why a worker computes nothing: a value of Worker.IdleReason.
type IdleReason string

// The reasons.
const (
	IdleNoJob       IdleReason = "no_job"      // no job is queued or running
	IdlePaused      IdleReason = "paused"      // all jobs that have not ended are paused
	IdleJobWaits    IdleReason = "job_waits"   // a job waits for something else, see JobInfo.Waiting
	IdleNextRound   IdleReason = "next_round"  // it gets tasks once the job's next round begins
	IdleFewTasks    IdleReason = "few_tasks"   // the other workers have all tasks of the round
	IdleShards      IdleReason = "shards"      // it has not all shards yet that its tasks read
	IdleStalled     IdleReason = "stalled"     // it let tasks wait, and others get them for a while
	IdleMemory      IdleReason = "memory"      // its --memory is too small for the tasks
	IdleRefused     IdleReason = "refused"     // it has another protocol or numerics
	IdleQuarantined IdleReason = "quarantined" // an audit found that it computes wrong bytes
	IdleFolder      IdleReason = "folder"      // its folder cannot be written
	IdleUnreachable IdleReason = "unreachable" // it has lost its connection
)
