package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// progress answers whether the jobs get anywhere.
func progress() row {
	return row{"Is it making progress?", []panel{
		{
			title: "Jobs", unit: units.Number, columns: 12, number: true,
			description: "Number of jobs in each state, as the leader counts them. `coppice job list` names the jobs.",
			queries: []query{{
				`sum by (state) (coppice_jobs and on (instance) (coppice_leader == 1))`, "{{state}}",
			}},
		},
		{
			title: "Jobs that wait", unit: units.Number, columns: 6, number: true, none: "none", colours: []limit{{0, "green"}, {1, "orange"}},
			description: "Number of jobs that cannot continue, by what they wait for. `coppice job list` says the same for each job, with the command that helps. Jobs that wait for `queue` alone are normal.",
			queries: []query{{
				`sum by (reason) (coppice_jobs_waiting and on (instance) (coppice_leader == 1)) > 0`, "{{reason}}",
			}},
		},
		{
			title: "Longest time without progress", unit: units.Seconds, columns: 6, number: true,
			colours:     []limit{{0, "green"}, {300, "orange"}, {900, "red"}},
			description: "Seconds since a job last finished a round, a task or a step of a fold, for the job with the longest such time. A single large tree may take minutes.",
			queries: []query{{
				`max(time() - max by (name) (coppice_job_last_progress_timestamp_seconds{name=~"$name"}))`, "",
			}},
		},
		{
			title: "Progress", unit: units.PercentUnit, columns: 8, top: 1,
			description: "Fraction of each running job that is done. Early stopping may end a job before it reaches 100 %.",
			queries:     []query{{`max by (name) (coppice_job_progress_ratio{name=~"$name"})`, "{{name}}"}},
		},
		{
			title: "Training loss", unit: units.Number, columns: 8,
			description: "K-L divergence on the training samples of each running job. With folds, it is the mean of the running folds. Random forests have no such loss. If a curve grows, try a smaller learning rate.",
			queries:     []query{{`max by (name) (coppice_job_loss{name=~"$name"})`, "{{name}}"}},
		},
		{
			title: "Steps done", unit: units.Short, columns: 8,
			description: "Number of steps of each running job; with folds, the sum of their steps. In a forest, each tree is a step. After a change of leader the curve falls back to the last checkpoint.",
			queries:     []query{{`max by (name) (coppice_job_steps{name=~"$name"})`, "{{name}}"}},
		},
		{
			title: "Steps a second", unit: units.CountsPerSecond, columns: 6,
			description: "Steps of all jobs together. If the number is zero while jobs run, look at the workers, at Raft, and at `coppice job list`.",
			queries:     []query{{`sum(rate(coppice_steps_total[$__rate_interval]))`, "steps"}},
		},
		{
			title: "Rounds a second", unit: units.CountsPerSecond, columns: 6,
			description: "Exchanges between the leader and the workers, including rounds inside folds. All trees of a random forest are one round.",
			queries:     []query{{`sum(rate(coppice_rounds_total[$__rate_interval]))`, "rounds"}},
		},
		{
			title: "Samples a second", unit: units.CountsPerSecond, columns: 6,
			description: "Training samples that the steps of all jobs draw each second.",
			queries:     []query{{`sum(rate(coppice_samples_total[$__rate_interval]))`, "samples"}},
		},
		{
			title: "Where the time goes", unit: units.PercentUnit, columns: 6,
			description: "Seconds per second in each phase: computing (the sum over all workers), broadcast, reduce, the leader's work between two rounds, and commits of training state. `wait` is the time that jobs waited for a commit.",
			queries: []query{
				{`sum by (phase) (rate(coppice_phase_seconds_sum[$__rate_interval]))`, "{{phase}}"},
				{`sum(rate(coppice_commit_wait_seconds_total[$__rate_interval]))`, "wait"},
			},
		},
	}}
}
