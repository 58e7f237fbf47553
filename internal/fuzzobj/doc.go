// Package fuzzobj makes API objects from bytes, for fuzz targets: valid objects, and objects
// that today's API server rejects, for an older one may have stored them. Equal bytes make
// equal objects.
package fuzzobj
