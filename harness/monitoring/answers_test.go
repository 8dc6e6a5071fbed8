package monitoring_test

import (
	"fmt"
	"slices"
	"strings"
)

// answers are what Prometheus said to the dashboard's queries, for people to read.
type answers struct {
	names map[string]string // the addresses of workers, by their names
	asked []shippedQuery
	said  map[shippedQuery][]string // one of each job
}

// add adds the answer of the job that runs.
func (a *answers) add(q shippedQuery, m []measured) {
	if a.said == nil {
		a.said = make(map[shippedQuery][]string)
	}
	if !slices.Contains(a.asked, q) {
		a.asked = append(a.asked, q)
	}
	values := make([]string, len(m))
	for i, x := range m {
		values[i] = x.String()
		for name, address := range a.names {
			values[i] = strings.Replace(values[i], address, name, 1)
		}
	}
	slices.Sort(values)
	a.said[q] = append(a.said[q], strings.Join(values, "<br>"))
}

// markdown returns a table for each question, with a row for each query.
func (a *answers) markdown() string {
	var b strings.Builder
	question := ""
	for _, q := range a.asked {
		if q.question != question {
			question = q.question
			fmt.Fprintf(&b, "\n**%s**\n\n| panel and query |", question)
			for _, j := range monitoredJobs {
				fmt.Fprintf(&b, " %s |", j.kind)
			}
			fmt.Fprintf(&b, "\n| --- |%s\n", strings.Repeat(" --- |", len(monitoredJobs)))
		}
		fmt.Fprintf(&b, "| %s: `%s` | %s |\n", q.panel, strings.ReplaceAll(q.expr, "|", `\|`), strings.Join(a.said[q], " | "))
	}
	return b.String()
}
