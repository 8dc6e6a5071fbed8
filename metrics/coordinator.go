package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The phases of a round.
const (
	PhaseBroadcast = "broadcast" // values and tasks out to workers
	PhaseCompute   = "compute"   // the workers' kernels, as each reports it
	PhaseReduce    = "reduce"    // the adding up of partials
	PhaseCommit    = "commit"    // trainer state through Raft
	PhaseBetween   = "between"   // what the leader does between two rounds
)

// Why a result that arrived was not used.
const (
	DropStale     = "stale"     // of another leader epoch, job or round
	DropDuplicate = "duplicate" // its node is filled
	DropMisshapen = "malformed" // not of the round's shape, or not decodable
	DropFull      = "full"      // there is no room for it
	DropSender    = "sender"    // it names another worker than its subject
)

// The states of workers, of jobs and of Raft that have a series each.
var (
	workerStates = []string{"alive", "refused"}
	jobStates    = []string{"queued", "paused", "running", "done", "failed", "cancelled"}
	raftStates   = []string{"follower", "candidate", "leader", "shutdown"}
	dropReasons  = []string{DropStale, DropDuplicate, DropMisshapen, DropFull, DropSender}
	refusals     = []string{"identity", "certificate", "token", "role", "owner"} // access.Reasons
	waitReasons  = []string{"blobs", "commit", "memory", "nats", "no_worker", "numerics", "queue", "retry",
		"workers_quarantined", "workers_refused", "workers_unreachable"}
)

// Coordinator is the instruments of a coordinator. Those of training move at
// the leader only.
type Coordinator struct {
	*set
	Traffic
	Budget
	Security

	Steps    prometheus.Counter
	Samples  prometheus.Counter
	Rounds   prometheus.Counter
	Loss     *prometheus.GaugeVec // by the name of the job; see ForgetJob
	Progress *prometheus.GaugeVec // by name; 0 to 1; see ForgetJob
	Interval *prometheus.GaugeVec // by name; seconds between commits; see ForgetJob
	JobSteps *prometheus.GaugeVec // by name; see ForgetJob
	Moved    *prometheus.GaugeVec // by name; Unix seconds of the last progress; see ForgetJob

	Broadcast   prometheus.Observer // seconds of a round
	Compute     prometheus.Observer // seconds of a task
	Reduce      prometheus.Observer // seconds of a round
	Between     prometheus.Observer // seconds between two rounds
	Commit      prometheus.Observer // seconds of a commit of trainer state
	TaskSeconds *Kinds              // seconds of a task, by the Round's Kind
	Shares      *Shares
	// CommitWait counts the seconds during which a driver stood still for a commit.
	CommitWait prometheus.Counter

	TasksDispatched prometheus.Counter
	TasksRetried    prometheus.Counter
	TasksWasted     prometheus.Counter
	Audits          prometheus.Counter
	// AuditDifferences counts tasks that a worker computed wrongly, as the other
	// answer or the leader's own showed.
	AuditDifferences prometheus.Counter
	ResultsDropped   *prometheus.CounterVec // reason: the Drop constants

	Workers     *prometheus.GaugeVec // state: alive, refused
	Quarantined prometheus.Gauge
	Shards      prometheus.Gauge
	ShardCopies prometheus.Gauge

	RaftTerm        prometheus.Gauge
	RaftLastContact prometheus.Gauge     // seconds
	RaftRoundTrip   *prometheus.GaugeVec // by coordinator; seconds
	Heartbeat       prometheus.Gauge     // seconds
	HeartbeatNeeded prometheus.Gauge     // seconds; 0: the heartbeat suits
	RaftApplied     prometheus.Gauge     // log index
	RaftCommit      prometheus.Histogram
	RaftVoters      prometheus.Gauge
	RaftLag         *prometheus.GaugeVec // by coordinator, at the leader; entries
	RaftLogBytes    prometheus.Gauge
	raftState       *prometheus.GaugeVec
	Leader          prometheus.Gauge // 1 while its driver leads
	Epoch           prometheus.Gauge

	Jobs        *prometheus.GaugeVec // state: protocol.JobState
	JobsWaiting *prometheus.GaugeVec // reason: protocol.WaitReason
	LeaderKnown prometheus.Gauge     // 1 while this coordinator hears a leader

	Blobs          prometheus.Gauge
	BlobBytes      prometheus.Gauge
	MissingBlobs   prometheus.Gauge
	MissingSeconds prometheus.Gauge // of the blob that has been missing for longest; 0: none is
	DiskFree       prometheus.Gauge // bytes
	DiskSize       prometheus.Gauge // bytes

	Requests   *Requests
	refused    *prometheus.CounterVec // reason: access.Reason
	LastBackup prometheus.Gauge       // Unix seconds; 0: none
}

// NewCoordinator registers a coordinator's instruments.
func NewCoordinator(reg prometheus.Registerer) *Coordinator {
	s := &set{}
	m := &Coordinator{set: s, Traffic: newTraffic(s), Budget: newBudget(s), Security: newSecurity(s)}
	m.training(s)
	m.phases(s)
	m.cluster(s)
	m.house(s)
	s.build("coordinator")
	reg.MustRegister(s)
	return m
}

func (m *Coordinator) training(s *set) {
	m.Steps = s.counter("steps_total", "Training steps that this leader has completed; a tree is a step. Each step of a "+
		"fold counts once, while the fold runs.")
	m.Samples = s.counter("samples_total", "Training samples drawn by completed training steps; for a tree, its "+
		"bootstrap draws.")
	m.Rounds = s.counter("rounds_total", "Rounds that this leader has completed, including the rounds within folds.")
	m.Loss = s.gauges("job_loss", "Last known training loss of a running job: with trees or folds, the mean over the "+
		"trees or folds that have a loss. The series is absent until the first loss.", "name")
	m.Progress = s.gauges("job_progress_ratio", "Fraction of a running job that is done, from 0 to 1.", "name")
	m.Interval = s.gauges("job_commit_interval_seconds",
		"Shortest time between two commits of a running job's state; it is longer if commits are slow.", "name")
	m.JobSteps = s.gauges("job_steps", "Completed training steps of a running job, over all folds; a tree is a step.",
		"name")
	m.Moved = s.gauges("job_last_progress_timestamp_seconds",
		"Unix time of a running job's last progress: a round, a task's result or a step of a fold; before that, the job's "+
			"start on this leader.", "name")
	m.TasksDispatched = s.counter("tasks_dispatched_total", "Tasks sent to workers.")
	m.TasksRetried = s.counter("tasks_retried_total", "Tasks sent again to the same worker, or also to another worker.")
	m.TasksWasted = s.counter("tasks_wasted_total", "Tasks that were computed although their result was not needed.")
	m.Audits = s.counter("audits_total", "Tasks that were computed twice and compared.")
	m.AuditDifferences = s.counter("audit_differences_total",
		"Tasks with a wrong result, found by an audit or because a partial result was not finite.")
	m.ResultsDropped = s.counters("results_dropped_total",
		"Heartbeats and task results of workers that were dropped, by reason.", "reason", dropReasons...)
	m.Jobs = s.gauges("jobs", "Jobs by state.", "state", jobStates...)
	m.JobsWaiting = s.gauges("jobs_waiting", "Queued and running jobs that wait, by reason; only at the leader.", "reason",
		waitReasons...)
}

func (m *Coordinator) phases(s *set) {
	v := s.histograms("phase_seconds", "Duration of the phases of a round: broadcast, compute (of a task), reduce, "+
		"between (two reduce rounds), commit (of training state).", "phase", durations)
	m.Broadcast, m.Compute = v.WithLabelValues(PhaseBroadcast), v.WithLabelValues(PhaseCompute)
	m.Reduce, m.Commit = v.WithLabelValues(PhaseReduce), v.WithLabelValues(PhaseCommit)
	m.Between = v.WithLabelValues(PhaseBetween)
	m.TaskSeconds = s.kinds("task_seconds", "Computing time of a task as reported by its worker, by kind as in "+
		"coppice_worker_task_seconds. A result that sums several tasks counts once, with their mean time.")
	m.Shares = s.shares()
	m.CommitWait = s.counter("commit_wait_seconds_total",
		"Time that jobs waited for a commit, including the encoding of their state.")
}

func (m *Coordinator) cluster(s *set) {
	m.Workers = s.gauges("workers", "Workers that the leader knows, by state.", "state", workerStates...)
	m.Quarantined = s.gauge("workers_quarantined", "Workers that are quarantined: an audit found a wrong result, and no "+
		"user has trusted the worker again.")
	m.Shards = s.gauge("shards", "Distinct shards of the datasets.")
	m.ShardCopies = s.gauge("shard_copies", "Verified copies of shards that live workers hold.")
	m.raftState = s.gauges("raft_state", "1 for the current Raft state, 0 for all other states.", "state", raftStates...)
	m.RaftTerm = s.gauge("raft_term", "Raft's current term.")
	m.RaftLastContact = s.gauge("raft_last_contact_seconds",
		"Time since this coordinator heard from the Raft leader; 0 at the leader.")
	m.RaftRoundTrip = s.gauges("raft_round_trip_seconds",
		"Smoothed round trip time to another coordinator, measured in the last 30 seconds.", "coordinator")
	m.Heartbeat = s.gauge("heartbeat_seconds", "The heartbeat (--heartbeat), from which all timeouts derive.")
	m.HeartbeatNeeded = s.gauge("heartbeat_needed_seconds",
		"Heartbeat that the measured round trips need; 0 while no round trip exceeds a third of the election timeout.")
	m.RaftApplied = s.gauge("raft_applied_index", "Index of the last log entry applied to the state machine.")
	m.RaftVoters = s.gauge("raft_voters", "Coordinators with a vote, as known to this coordinator.")
	m.RaftLag = s.gauges("raft_peer_lag_entries", "Log entries that another coordinator lacks; only at the leader. The "+
		"last known position counts if that coordinator does not answer.", "coordinator")
	m.RaftLogBytes = s.gauge("raft_log_bytes", "Size of the Raft log's files on this coordinator's disk, which are "+
		"allocated in advance.")
	m.RaftCommit = s.histogram("raft_commit_seconds", "Time from proposing a log entry until it is applied.")
	m.Leader = s.gauge("leader", "1 while this coordinator leads and runs the jobs.")
	m.LeaderKnown = s.gauge("leader_known", "1 while this coordinator is the leader of a quorum, or hears from one.")
	m.Epoch = s.gauge("leader_epoch", "Leader epoch: the log index at which the current leader took over.")
	m.Blobs = s.gauge("blobs", "Blobs in this coordinator's folder.")
	m.BlobBytes = s.gauge("blobs_bytes", "Bytes of the blobs in this coordinator's folder.")
	m.MissingBlobs = s.gauge("missing_blobs", "Blobs that the cluster's state refers to, but that are missing on this "+
		"coordinator.")
	m.MissingSeconds = s.gauge("missing_blobs_seconds",
		"Time since the oldest of the missing blobs was found missing; 0 while no blob is missing.")
}

func (m *Coordinator) house(s *set) {
	m.DiskFree = s.gauge("disk_free_bytes", "Bytes that this coordinator can still write on the disk of its folder.")
	m.DiskSize = s.gauge("disk_size_bytes", "Size of the disk of this coordinator's folder.")
	m.Requests = s.requests()
	m.refused = s.counters("requests_refused_total", "HTTP requests that this coordinator refused, by reason: the "+
		"caller has no identity, an invalid certificate or token, or no right by its role, or another user is the owner.",
		"reason", refusals...)
	m.LastBackup = s.gauge("backup_last_success_timestamp_seconds",
		"Unix time at which this process last sent a complete backup; 0 if it has sent none.")
}

// SetRaftState shows which state Raft is in: follower, candidate, leader or
// shutdown.
func (m *Coordinator) SetRaftState(state string) {
	for _, s := range raftStates {
		v := 0.0
		if s == state {
			v = 1
		}
		m.raftState.WithLabelValues(s).Set(v)
	}
}

// Refused counts a request that was refused for an access.Reason.
func (m *Coordinator) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// ForgetJob removes the series of a job that has ended, or of all where job is
// empty (a leader that steps down).
func (m *Coordinator) ForgetJob(job string) {
	for _, v := range []*prometheus.GaugeVec{m.Loss, m.Progress, m.Interval, m.JobSteps, m.Moved} {
		if job == "" {
			v.Reset()
		} else {
			v.DeleteLabelValues(job)
		}
	}
}

// Requests counts HTTP requests by route: the pattern that a path matched, never the
// path itself.
type Requests struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func (s *set) requests() *Requests {
	r := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "http_requests_total",
			Help: "Answered HTTP requests, by path pattern and status code. A stream counts when it ends.",
		}, []string{"route", "code"}),
	}
	s.all = append(s.all, r.total)
	r.seconds = s.histograms("http_request_seconds",
		"Time to answer an HTTP request, including bodies. Requests that wait by design (a stream of changes, wait_ms) are "+
			"not counted.", "route", durations)
	return r
}

// Add counts a request that was answered with a status code after some time; waits:
// how long it took says nothing.
func (r *Requests) Add(route string, code int, took time.Duration, waits bool) {
	r.total.WithLabelValues(route, strconv.Itoa(code)).Inc()
	if !waits {
		r.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// Budget is the instruments of what others take of a coordinator's process.
type Budget struct {
	Connections       *prometheus.GaugeVec   // service: http, nats
	ConnectionsClosed *prometheus.CounterVec // service: http, nats
	Messages          *prometheus.GaugeVec   // bytes; part: sending, received
	MessagesDropped   prometheus.Counter
}

func newBudget(s *set) Budget {
	services := []string{"http", "nats"}
	return Budget{
		Connections: s.gauges("connections", "Open connections of clients, by service.", "service", services...),
		ConnectionsClosed: s.counters("connections_closed_total",
			"Connections that were refused or closed because of a limit, by service. A NATS client that reads too slowly may "+
				"count twice.", "service", services...),
		Messages: s.gauges("message_memory_bytes",
			"Memory of messages: sending (messages that NATS clients have not read yet), received (incoming messages that are "+
				"incomplete or not processed yet).", "part", "received", "sending"),
		MessagesDropped: s.counter("messages_dropped_total",
			"Messages that were dropped because the memory for messages was full."),
	}
}
