package protocol

import "strings"

// WaitReason says in a word for what a job waits: a value of JobInfo.WaitingFor, and of
// the label reason of coppice_jobs_waiting.
type WaitReason string

// The reasons.
const (
	WaitNoWorker    WaitReason = "no_worker"           // there is none
	WaitUnreachable WaitReason = "workers_unreachable" // those that there are have lost their connection
	WaitRefused     WaitReason = "workers_refused"     // they have another protocol or numerics
	WaitQuarantined WaitReason = "workers_quarantined" // audits showed that they compute wrong bytes
	WaitMemory      WaitReason = "memory"              // no worker has as much as a task takes
	WaitQueue       WaitReason = "queue"               // other jobs come first
	WaitCommit      WaitReason = "commit"              // nothing can be recorded just now
	WaitNATS        WaitReason = "nats"                // the leader cannot reach the workers
	WaitNumerics    WaitReason = "numerics"            // a leader of another version has to run it
	WaitBlobs       WaitReason = "blobs"               // no coordinator that answers has blobs that it needs
	WaitRetry       WaitReason = "retry"               // it stops again and again for a reason that may pass
)

// WaitReasons lists the reasons.
func WaitReasons() []WaitReason {
	return []WaitReason{
		WaitBlobs, WaitCommit, WaitMemory, WaitNATS, WaitNoWorker, WaitNumerics, WaitQueue, WaitRetry, WaitQuarantined, WaitRefused, WaitUnreachable,
	}
}

// JoinList lists the HTTP addresses of coordinators as the flag --join takes them.
func JoinList(members []MemberEntry) string {
	var all []string
	for i := range members {
		if h := members[i].HTTP; h != "" {
			all = append(all, h)
		}
	}
	return strings.Join(all, ",")
}

// StartWorker is the command that starts a worker of the coordinators of a JoinList.
func StartWorker(join string) string { return "coppice worker --join " + join + " --dir DIR" }

// NoWorker says that there is no worker, and how to get one.
func NoWorker(join string) string {
	return "no worker is connected; start a worker: " + StartWorker(join)
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
	case WaitQuarantined:
		return "workers quarantined"
	case WaitMemory:
		return "no worker with enough memory"
	case WaitQueue:
		return "behind other jobs"
	case WaitCommit:
		return "nothing can be recorded"
	case WaitNATS:
		return "no NATS"
	case WaitNumerics:
		return "other arithmetic version"
	case WaitBlobs:
		return "blobs missing"
	case WaitRetry:
		return "will be retried"
	}
	return string(r)
}
