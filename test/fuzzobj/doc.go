// Package fuzzobj generates API objects from bytes, for fuzz targets: valid objects, and objects
// that the API server rejects today, because an older API server may have stored them.
// Equal bytes generate equal objects.
package fuzzobj
