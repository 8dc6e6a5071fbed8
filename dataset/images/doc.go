// Package images reads PNG and JPEG files as numbers, and reads and writes maps that have a class
// for each pixel. All arithmetic is with whole numbers until the last division, so that a file
// gives the same numbers on every machine.
package images
