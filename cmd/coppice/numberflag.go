package main

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/internal/units"
)

// decimalNumbers reads flags that are numbers as decimal numbers. kong would take 010 for 8, and 1_0 for 10.
func decimalNumbers() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		for _, kind := range []reflect.Kind{
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64,
		} {
			if err := kong.KindMapper(kind, kong.MapperFunc(decodeNumber)).Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// decodeNumber implements kong.MapperFunc.
func decodeNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("number")
	if err != nil {
		return err
	}
	text, bits := fmt.Sprint(token.Value), target.Type().Bits()
	switch {
	case target.CanInt():
		v, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return fmt.Errorf("want a whole number that fits in %d bits, got %q", bits, text)
		}
		target.SetInt(v)
	case target.CanUint():
		v, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return fmt.Errorf("want a whole number of at least 0 that fits in %d bits, got %q", bits, text)
		}
		target.SetUint(v)
	default:
		v, err := units.ParseFloat(text)
		if err != nil {
			return fmt.Errorf("want a decimal number, got %q", text)
		}
		target.SetFloat(v)
	}
	return nil
}
