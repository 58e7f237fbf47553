// Package fuzzobj makes API objects of bytes, for fuzz targets: sensible ones and
// such as no API server of today would let pass, for a watch may bring what an
// older or a broken one stored. Equal bytes make equal objects.
package fuzzobj
