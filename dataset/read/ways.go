package read

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
)

// oneWay is a way that one flag chooses.
func oneWay(flag, value, format string, args ...any) dataset.Way {
	f := dataset.Flag{Name: flag, Value: value}
	if strings.HasPrefix(flag, "--label-") || flag == "--drop" { // they take lists
		f = dataset.ListFlag(flag, value)
	}
	return dataset.Way{What: fmt.Sprintf(format, args...), Flags: []dataset.Flag{f}}
}

// headerWays are the ways to read a first line.
var headerWays = []dataset.Way{oneWay("--header", "yes", "the first line is a header"), oneWay("--header", "no", "the first line is a row")}
