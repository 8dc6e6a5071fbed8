package protocol

// WaitReason says in a word for what a job waits: a value of JobInfo.WaitingFor, and of
// the label reason of coppice_jobs_waiting.
type WaitReason string

// The reasons.
const (
	WaitNoWorker    WaitReason = "no_worker"           // there is none
	WaitUnreachable WaitReason = "workers_unreachable" // those that there are have lost their connection
	WaitRefused     WaitReason = "workers_refused"     // they have another protocol or numerics
	WaitDistrusted  WaitReason = "workers_distrusted"  // audits showed that they compute wrong bytes
	WaitMemory      WaitReason = "memory"              // no worker has as much as a unit takes
	WaitQueue       WaitReason = "queue"               // other jobs come first
	WaitCommit      WaitReason = "commit"              // nothing can be recorded just now
	WaitNATS        WaitReason = "nats"                // the leader cannot reach the workers
	WaitNumerics    WaitReason = "numerics"            // a leader of another version has to run it
	WaitRetry       WaitReason = "retry"               // it stops again and again for a reason that may pass
)

// WaitReasons lists the reasons.
func WaitReasons() []WaitReason {
	return []WaitReason{
		WaitCommit, WaitMemory, WaitNATS, WaitNoWorker, WaitNumerics, WaitQueue, WaitRetry, WaitDistrusted, WaitRefused, WaitUnreachable,
	}
}

// Short is the reason in a few words, for tables.
func (r WaitReason) Short() string {
	switch r {
	case WaitNoWorker:
		return "no worker"
	case WaitUnreachable:
		return "workers unreachable"
	case WaitRefused:
		return "workers refused"
	case WaitDistrusted:
		return "workers distrusted"
	case WaitMemory:
		return "no worker has the memory"
	case WaitQueue:
		return "behind other jobs"
	case WaitCommit:
		return "nothing can be recorded"
	case WaitNATS:
		return "no NATS"
	case WaitNumerics:
		return "other numerics"
	case WaitRetry:
		return "tried again"
	}
	return string(r)
}
