// Package open opens a job for whatever computes its tasks: a worker, the leader's
// verifier, and the runner of --local and of folds. All of them so prepare a job, and check
// its dataset, in the same way; they differ in where shards come from, in memory and in
// lanes, which is theirs.
//
//	job, err := open.Open(spec, manifest, blob)   // checks, roles of rows, kernel, weights
//	_, err = job.AddShard(i, rows)                // checked against the manifest, once
//	err = engine.RunTask(partial, job.Kernel, task, job.Data, ...)
//	child, err := job.Child(childSpec)            // a fold, on the same shards
//
// The trainer is not here: the leader has one and computes no task. A panic of an
// algorithm becomes an error by engine.Guard.
package open
