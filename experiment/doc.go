// Package experiment has what an experiment is: a spec of datasets, rows, folds and measures,
// the job of cells that it makes of each dataset, the records of cells that ended, and the
// table of both. DESIGN.md says why.
package experiment
