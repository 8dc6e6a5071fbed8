package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// progress answers whether the jobs get anywhere.
func progress() row {
	return row{"Is it making progress?", []panel{
		{
			title: "Jobs", unit: units.Number, columns: 12, number: true,
			description: "Jobs by state, as the leader counts them. `coppice job list` names them.",
			queries: []query{{
				`sum by (state) (coppice_jobs and on (instance) (coppice_leader == 1))`, "{{state}}",
			}},
		},
		{
			title: "Jobs that wait", unit: units.Number, columns: 6, number: true, none: "none", colours: []limit{{0, "green"}, {1, "orange"}},
			description: "Jobs that cannot go on, by what they wait for. `coppice job list` says the same for each job, with the command that helps. `queue` is no trouble by itself.",
			queries: []query{{
				`sum by (reason) (coppice_jobs_waiting and on (instance) (coppice_leader == 1)) > 0`, "{{reason}}",
			}},
		},
		{
			title: "Longest time without progress", unit: units.Seconds, columns: 6, number: true,
			colours:     []limit{{0, "green"}, {300, "orange"}, {900, "red"}},
			description: "Seconds since the last round, result of a task, or step of a fold, of the job that has waited longest for one. A large tree may take minutes by itself.",
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
			description: "K-L divergence on the training samples of each running job that has such a loss (random forests have none); of folds, the mean of those that run. A curve that grows: try a smaller learning rate.",
			queries:     []query{{`max by (name) (coppice_job_loss{name=~"$name"})`, "{{name}}"}},
		},
		{
			title: "Steps done", unit: units.Short, columns: 8,
			description: "Steps of each running job; with folds, of all of them; a tree is a step. A curve that falls back shows a new leader, which goes on from the last checkpoint.",
			queries:     []query{{`max by (name) (coppice_job_steps{name=~"$name"})`, "{{name}}"}},
		},
		{
			title: "Steps a second", unit: units.CountsPerSecond, columns: 6,
			description: "Of all jobs together. At zero while jobs run: look at the workers, at Raft, and at `coppice job list`.",
			queries:     []query{{`sum(rate(coppice_steps_total[$__rate_interval]))`, "steps"}},
		},
		{
			title: "Rounds a second", unit: units.CountsPerSecond, columns: 6,
			description: "Exchanges between leader and workers, and those within folds. All trees of a random forest are one round.",
			queries:     []query{{`sum(rate(coppice_rounds_total[$__rate_interval]))`, "rounds"}},
		},
		{
			title: "Samples a second", unit: units.CountsPerSecond, columns: 6,
			description: "Training samples that the steps of all jobs have drawn, each second.",
			queries:     []query{{`sum(rate(coppice_samples_total[$__rate_interval]))`, "samples"}},
		},
		{
			title: "Where the time goes", unit: units.PercentUnit, columns: 6,
			description: "Seconds a second in each phase: computing (the sum over all workers), broadcast, reduce, the leader between two rounds, and commits of training state. `wait` is the time in which jobs stood still for a commit.",
			queries: []query{
				{`sum by (phase) (rate(coppice_phase_seconds_sum[$__rate_interval]))`, "{{phase}}"},
				{`sum(rate(coppice_commit_wait_seconds_total[$__rate_interval]))`, "wait"},
			},
		},
	}}
}
