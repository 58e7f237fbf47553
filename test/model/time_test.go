package model

import (
	"syscall"
	"time"
)

// realTime returns the time of the machine: in a bubble, time.Now is that of the bubble.
func realTime() time.Time {
	var now syscall.Timeval
	if err := syscall.Gettimeofday(&now); err != nil {
		panic(err)
	}
	return time.Unix(now.Unix())
}
