// Package experiment has what an experiment is: a spec of datasets, methods, folds and measures,
// the job of runs that it makes of each dataset, the records of runs that ended, and the
// table of both. DESIGN.md says why.
package experiment
