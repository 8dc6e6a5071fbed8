//go:build !purego

package num

// vectors calls do with each width of vectors that the processor has, and with none.
func vectors(do func(name string)) {
	has, most := Accelerated, wide
	defer func() { Accelerated, wide = has, most }()
	do("the widest vectors")
	wide = false
	do("narrower vectors")
	Accelerated = false
	do("no vectors")
}
