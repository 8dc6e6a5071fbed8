package protocol

import (
	"strconv"
	"strings"
)

// Subjects makes the NATS subjects of one cluster: all begin with
// coppice.<cluster>. so that clusters can share one NATS.
type Subjects struct{ Cluster string }

func (s Subjects) of(tail string) string { return "coppice." + s.Cluster + "." + tail }

// Beats carries workers' Beat messages to all coordinators.
func (s Subjects) Heartbeats() string { return s.of("beat") }

// Lead carries the leader's Lead messages to everyone.
func (s Subjects) Lead() string { return s.of("lead") }

// Work carries the leader's messages to one worker: Setup, Value, Run, Forget,
// Hold, Probe. Each names the worker's Reply as the subject for answers.
func (s Subjects) Work(worker string) string { return s.of("work." + worker) }

// Results carries workers' messages to the leader of one epoch: Part, Collected,
// Checkpoint, Progress, Need, Fail. The last word of the subject is the worker: see
// ResultsOf.
func (s Subjects) Results(coordinator string, epoch uint64) string {
	return s.of("results." + coordinator + "." + strconv.FormatUint(epoch, 10))
}

// ResultsOf is the subject below results (of Results) for the answers of one worker.
// NATS itself answers there, at once, when nobody listens on the worker's Work.
func ResultsOf(results, worker string) string { return results + "." + worker }

// Blobs takes BlobGet requests that any coordinator with the blob answers.
func (s Subjects) Blobs() string { return s.of("blobs") }

// BlobsOf takes BlobGet requests for one coordinator or worker.
func (s Subjects) BlobsOf(node string) string { return s.of("blobs." + node) }

// Answers is the beginning of the subjects on which one worker's requests are answered.
func (s Subjects) Answers(worker string) string { return s.of("answers." + worker) }

// Coordinators' requests are answered on NATS's own subjects.
const coordinatorAnswers = "_INBOX.>"

// MayAnswer reports whether a coordinator answers a request on the subject that it names for
// its answer: that of a worker's answers, or NATS's own. Whoever may send a request could
// otherwise have the coordinator send where only coordinators may.
func (s Subjects) MayAnswer(reply string) bool {
	return strings.HasPrefix(reply, s.of("answers.")) || strings.HasPrefix(reply, strings.TrimSuffix(coordinatorAnswers, ">"))
}

// WorkerSends lists what any worker sends to. Only coordinators listen there.
func (s Subjects) WorkerSends() []string {
	return []string{s.Heartbeats(), s.of("results.>"), s.Blobs(), coordinatorAnswers}
}

// WorkerHears lists what one worker listens to. Only coordinators send there. Who has not the
// name of a worker, which is of letters, digits, - and _, may listen to the leader alone.
func (s Subjects) WorkerHears(worker string) []string {
	if worker == "" || strings.ContainsFunc(worker, strange) {
		return []string{s.Lead()}
	}
	return []string{s.Lead(), s.Work(worker), s.BlobsOf(worker), s.Answers(worker) + ".>"}
}

// strange reports whether a name of a worker has no such character. Those of subjects that
// all coordinators listen to, such as $all, have.
func strange(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// Replicate takes Replicate requests for one coordinator.
func (s Subjects) Replicate(coordinator string) string { return s.of("replicate." + coordinator) }
