package faultproxy

import (
	"context"
	"io"
	"net/http"
	"time"
)

const (
	// pieces is the number of pieces of a slow list.
	pieces = 10
	// piece is the size of each in bytes if the size of the list is unknown.
	piece = 4096
)

// drip returns a body in pieces with a delay before each.
type drip struct {
	io.ReadCloser
	ctx   context.Context
	size  int
	left  int // delays
	delay time.Duration
}

func newDrip(ctx context.Context, response *http.Response, total time.Duration) *drip {
	size := piece
	if response.ContentLength > 0 {
		size = int(response.ContentLength/pieces) + 1
	}
	return &drip{ReadCloser: response.Body, ctx: ctx, size: size, left: pieces, delay: total / pieces}
}

// Read implements [io.Reader].
func (d *drip) Read(buffer []byte) (int, error) {
	if d.left == 0 {
		return d.ReadCloser.Read(buffer)
	}
	d.left--
	if err := pass(d.ctx, d.delay); err != nil {
		return 0, err
	}
	return d.ReadCloser.Read(buffer[:min(len(buffer), d.size)])
}
