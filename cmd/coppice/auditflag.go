package main

import (
	"fmt"

	"github.com/coppice-ldl/coppice/internal/units"
)

// auditFlag asks for units to be computed twice.
type auditFlag struct {
	Audit auditRate `group:"cluster" seldom:"" placeholder:"RATE" help:"Fraction of the tasks, 0 to 1, that two workers compute, so that their results can be compared. A worker with a wrong result is reported and quarantined (default: 0)."`
}

// auditRate is a share from 0 to 1.
type auditRate float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *auditRate) UnmarshalText(text []byte) error {
	v, err := units.ParseFloat(string(text))
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("%q is not a fraction from 0 to 1", text)
	}
	*r = auditRate(v)
	return nil
}
