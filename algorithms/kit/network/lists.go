package network

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
)

// The words of other settings.
const (
	none    = "none" // no list, no shape
	row     = "row"  // the shape 1×1×features
	max2d   = "max"
	average = "average"
)

// listForm says what a list looks like.
const listForm = "whole numbers such as 128 or 256,128, or none"

// parseList reads a list of numbers; none has none.
func parseList(text string) ([]int, error) {
	if text == none {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > mostLayers {
		return nil, fmt.Errorf("the list has more than %d layers", mostLayers)
	}
	numbers := make([]int, len(parts))
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > maxSide || strconv.Itoa(n) != part {
			return nil, fmt.Errorf("%q is not a whole number from 1 to %d", part, maxSide)
		}
		numbers[i] = n
	}
	return numbers, nil
}

func checkList(text string) error {
	_, err := parseList(text)
	return err
}

func checkShape(text string) error {
	if text == none || text == row {
		return nil
	}
	_, err := dataset.ParseShape(text)
	return err
}

// maxFactor bounds what a layer's learning rate is multiplied by.
const maxFactor = 1000

// layerFactor is what the learning rate of a layer is multiplied by.
type layerFactor struct {
	layer  string
	factor float64
}

// parseFactors reads a list of layers: the factor of each follows a colon if the list is rated, else it is 0.
func parseFactors(text string, rated bool) (list []layerFactor, err error) {
	if text == none {
		return nil, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		x := layerFactor{layer: item}
		value, found := "", !rated
		if rated {
			x.layer, value, found = strings.Cut(item, ":")
		}
		if x.layer == "" || !found {
			return nil, errors.New("want LAYER or LAYER:FACTOR, but the name of a layer or its factor is missing")
		}
		if rated {
			x.factor, err = strconv.ParseFloat(value, 64)
			if err != nil || !(x.factor > 0 && x.factor <= maxFactor) || strings.Trim(value, "0123456789.eE+-") != "" {
				return nil, fmt.Errorf("%q: want a number above 0 and at most %d", value, maxFactor)
			}
		}
		list = append(list, x)
	}
	seen := make(map[string]bool)
	for _, x := range list {
		if seen[x.layer] {
			return nil, fmt.Errorf("the list has %q twice", x.layer)
		}
		seen[x.layer] = true
	}
	return list, nil
}

func checkFreeze(text string) error {
	_, err := parseFactors(text, false)
	return err
}

func checkRates(text string) error {
	_, err := parseFactors(text, true)
	return err
}
