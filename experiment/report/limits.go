package report

import (
	"fmt"

	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// ContentType returns the content type of reports of a format, for HTTP.
func ContentType(format string) string {
	switch format {
	case "md":
		return "text/markdown; charset=utf-8"
	case "csv":
		return "text/csv; charset=utf-8"
	case "json":
		return "application/json"
	case "latex":
		return "application/x-tex; charset=utf-8"
	case "html", "fragment":
		return "text/html; charset=utf-8; product=" + protocol.Product
	}
	return "text/plain; charset=utf-8"
}

// How many runs a report that a server makes may be of, without recorded data and with it. A run takes about 1.5 KB
// of memory, and 5 KB with a confusion matrix of 20 classes. With recorded data it takes 3 KB if there are few
// labels, and some 35 KB at most: see protocol.MaxCellRecord. So a report takes 0.3 GiB in most cases, and about a
// gibibyte at most.
const (
	maxServed         = 200_000
	maxServedRecorded = 20_000
)

// CheckSize refuses a report that takes too much memory of a server; recorded is true if the runs have learning
// curves or predictions.
func CheckSize(runs int, recorded bool) error {
	most := maxServed
	if recorded {
		most = maxServedRecorded
	}
	if runs > most {
		return fmt.Errorf("the experiment has %s runs, and a server makes reports of at most %s; coppice experiment report "+
			"makes longer ones", units.Count(runs), units.Count(most))
	}
	return nil
}
