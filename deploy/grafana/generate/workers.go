package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// workers answers which worker holds the others up.
func workers() row {
	return row{"Which worker is slow?", append([]panel{
		{
			title: "Workers", unit: units.Number, columns: 8, number: true,
			description: "Number of workers that the leader knows: alive, and refused because of another protocol or version. `coppice cluster show` lists the workers.",
			queries: []query{{
				`sum by (state) (coppice_workers and on (instance) (coppice_leader == 1))`, "{{state}}",
			}},
		},
		{
			title: "Quarantined", unit: units.Number, columns: 4, number: true, colours: []limit{{0, "green"}, {1, "red"}},
			description: "Workers that had a wrong result in an audit and are not used any more. Test the machine's memory; `coppice cluster trust` puts a worker back into use.",
			queries:     []query{{`max(coppice_workers_quarantined)`, ""}},
		},
		{
			title: "Slots in use", unit: units.PercentUnit, columns: 4, number: true,
			description: "Fraction of the workers' slots that compute a task now. If it is low while jobs run, the tasks are few or short.",
			queries:     []query{{`sum(coppice_worker_busy_slots) / sum(coppice_worker_slots)`, ""}},
		},
		{
			title: "Retried", unit: units.PercentUnit, columns: 4, number: true, colours: []limit{{0, "green"}, {.05, "orange"}, {.25, "red"}},
			description: "Fraction of the tasks of the last five minutes that were given out again, because a worker was missing, did not answer or was slow.",
			queries:     []query{{`sum(rate(coppice_tasks_retried_total[5m])) / (sum(rate(coppice_tasks_dispatched_total[5m])) > 0)`, ""}},
		},
		{
			title: "Shards held", unit: units.Number, columns: 4, number: true,
			description: "Mean number of verified copies per shard on live workers. Below 1, workers still fetch shards that they need.",
			queries: []query{{
				`sum(coppice_shard_copies and on (instance) (coppice_leader == 1)) / max(coppice_shards > 0)`, "",
			}},
		},
	}, slowness()...)}
}

// slowness shows each worker next to the others.
func slowness() []panel {
	return []panel{
		{
			title: "Seconds a task, by worker and kind", unit: units.Seconds, columns: 12,
			description: "Mean time of a task, as each worker measures it, by kind (step, leaf update, tree, fold). A worker above the others of the same kind is slow: look at its load and its clock speed.",
			queries: []query{each(
				`sum by (instance, kind) (rate(coppice_worker_task_seconds_sum{%[1]s}[$__rate_interval])) / (sum by (instance, kind) (rate(coppice_worker_task_seconds_count{%[1]s}[$__rate_interval])) > 0)`,
				"{{instance}} {{kind}}")},
		},
		{
			title: "Seconds a task, as the leader sees it", unit: units.Seconds, columns: 12,
			description: "Mean time of a task by worker, from the results that reached the leader. Workers that Prometheus does not scrape are included.",
			queries: []query{{
				`sum by (worker) (rate(coppice_leader_worker_task_seconds_total[$__rate_interval])) / (sum by (worker) (rate(coppice_leader_worker_tasks_total[$__rate_interval])) > 0)`,
				"{{worker}}",
			}},
		},
		{
			title: "Slowest tasks, by kind", unit: units.Seconds, columns: 8,
			description: "Time within which 99 of 100 tasks of a kind end. If the time is far above the mean, tasks differ in size or one worker is slow.",
			queries: []query{{
				`histogram_quantile(0.99, sum by (le, kind) (rate(coppice_task_seconds_bucket[$__rate_interval])))`, "{{kind}}",
			}},
		},
		{
			title: "Tasks a second, by worker", unit: units.CountsPerSecond, columns: 8,
			description: "Tasks whose results reached the leader. A worker at zero while others compute has no shard that is needed, or hangs.",
			queries:     []query{{`sum by (worker) (rate(coppice_leader_worker_tasks_total[$__rate_interval]))`, "{{worker}}"}},
		},
		{
			title: "Work that was lost", unit: units.CountsPerSecond, columns: 8,
			description: "Tasks that were given out again, were not needed, or could not be computed, and results that were dropped. A few are normal after a worker died.",
			queries: []query{
				{`sum(rate(coppice_tasks_retried_total[$__rate_interval]))`, "retried"},
				{`sum(rate(coppice_tasks_wasted_total[$__rate_interval]))`, "not needed"},
				{`sum by (reason) (rate(coppice_results_dropped_total[$__rate_interval]))`, "dropped: {{reason}}"},
				each(`sum by (instance) (rate(coppice_worker_tasks_failed_total{%s}[$__rate_interval]))`, "failed on {{instance}}"),
			},
		},
	}
}
