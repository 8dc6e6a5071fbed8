package dataset

import (
	"fmt"
	"strings"
)

// oneWay is a way that one flag chooses.
func oneWay(flag, value, format string, args ...any) Way {
	f := Flag{Name: flag, Value: value}
	if strings.HasPrefix(flag, "--label-") || flag == "--drop" { // they take lists
		f = listFlag(flag, value)
	}
	return Way{fmt.Sprintf(format, args...), []Flag{f}}
}

// headerWays are the ways to read a first line.
var headerWays = []Way{oneWay("--header", "yes", "the first line is a header"), oneWay("--header", "no", "the first line is a row")}

// commentWays are the ways to read lines that begin as comments do.
var commentWays = []Way{oneWay("--header", "no", "lines that begin like comments are rows"), oneWay("--header", "yes", "lines that begin like comments are skipped, and the next line is the header")}
