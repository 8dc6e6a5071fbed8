package metrics

import "github.com/prometheus/client_golang/prometheus"

// Worker is the instruments of a worker.
type Worker struct {
	*set
	Traffic
	Security

	Tasks       prometheus.Counter
	TasksFailed prometheus.Counter
	TaskSeconds *Kinds // by the Round's Kind
	Rows        prometheus.Counter
	Rounds      prometheus.Counter
	Needs       prometheus.Counter
	// OrdersDropped counts by reason: leader_epoch, late, malformed.
	OrdersDropped *prometheus.CounterVec

	Slots     prometheus.Gauge
	Busy      prometheus.Gauge
	Jobs      prometheus.Gauge
	Epoch     prometheus.Gauge
	Connected prometheus.Gauge
	RoundTrip prometheus.Gauge // seconds; to the NATS server

	Shards       prometheus.Gauge
	CacheBytes   prometheus.Gauge
	BlobsFetched prometheus.Counter
	BlobsCorrupt prometheus.Counter
}

// NewWorker registers a worker's instruments.
func NewWorker(reg prometheus.Registerer) *Worker {
	s := &set{}
	m := &Worker{set: s, Traffic: newTraffic(s), Security: newSecurity(s)}
	m.Tasks = s.counter("worker_tasks_total", "Tasks that this worker has computed.")
	m.TasksFailed = s.counter("worker_tasks_failed_total", "Tasks that could not be computed.")
	m.TaskSeconds = s.kinds("worker_task_seconds", "Time to compute a task, by kind: step, leaf update, validation, "+
		"tree, fold and others. At most 16 kinds have a series; all others count as kind=\"other\".")
	m.Rows = s.counter("worker_samples_total", "Samples in the data of computed tasks, including samples that a "+
		"mini-batch does not draw.")
	m.Rounds = s.counter("worker_rounds_total", "Messages received with tasks to compute.")
	m.Needs = s.counter("worker_requests_total", "Requests to the leader for a job or parameters that were missing on "+
		"this worker.")
	m.OrdersDropped = s.counters("worker_messages_dropped_total",
		"Dropped messages of a leader, by reason: leader_epoch (from an earlier leader), late (from an earlier round) or "+
			"malformed.",
		"reason", "leader_epoch", "late", "malformed")
	m.Slots = s.gauge("worker_slots", "Tasks that this worker can compute at the same time.")
	m.Busy = s.gauge("worker_busy_slots", "Tasks that this worker is computing, plus threads that help with these tasks.")
	m.Jobs = s.gauge("worker_jobs", "Jobs that this worker holds in memory.")
	m.Epoch = s.gauge("worker_leader_epoch", "Highest leader epoch that this worker has seen.")
	m.Connected = s.gauge("worker_connected", "1 while this worker is connected to NATS.")
	m.RoundTrip = s.gauge("worker_nats_round_trip_seconds", "Smoothed round trip time to the NATS server.")
	m.Shards = s.gauge("worker_shards", "Verified shards in this worker's cache.")
	m.CacheBytes = s.gauge("worker_cache_bytes", "Size of the files in this worker's cache.")
	m.BlobsFetched = s.counter("worker_blobs_fetched_total", "Blobs that this worker has fetched from coordinators.")
	m.BlobsCorrupt = s.counter("worker_blobs_corrupt_total",
		"Cache files that did not match their digest and were fetched again.")
	s.build("worker")
	reg.MustRegister(s)
	return m
}
