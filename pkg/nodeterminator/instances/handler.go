package instances

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
)

// Handler serves the provider: POST /v1/get, /v1/stop and /v1/delete. The context of a call ends when its client does.
func Handler(p Provider) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/get", handle(p.Get))
	mux.HandleFunc("POST /v1/stop", handle(p.Stop))
	mux.HandleFunc("POST /v1/delete", handle(p.Delete))
	return mux
}

// handle serves one call of a provider.
func handle(call func(context.Context, Instance) (State, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var i Instance
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&i); err != nil {
			write(w, http.StatusBadRequest, answer{Error: cleaned("the request is no instance: " + err.Error())})
			return
		}
		if i.Node == "" || i.NodeUID == "" {
			write(w, http.StatusBadRequest, answer{Error: "the request names no node, or no nodeUID"})
			return
		}
		state, err := call(r.Context(), i)
		if err == nil && !slices.Contains(states, state) {
			err = fmt.Errorf("the provider returned the unknown state %q", state)
		}
		if err != nil {
			writeError(w, err)
			return
		}
		write(w, http.StatusOK, answer{State: state})
	}
}

// writeError answers with the error of a provider.
func writeError(w http.ResponseWriter, err error) {
	status, a := http.StatusInternalServerError, answer{Error: cleaned(err.Error())}
	var said *Error
	if errors.As(err, &said) {
		a.Unsupported, a.RetryAfterSeconds = said.Unsupported, math.Ceil(said.RetryAfter.Seconds())
	}
	switch {
	case a.Unsupported:
		status = http.StatusNotImplemented
	case a.RetryAfterSeconds > 0:
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.FormatFloat(a.RetryAfterSeconds, 'f', 0, 64))
	}
	write(w, status, a)
}

// write answers a request. A client that went away needs no answer.
func write(w http.ResponseWriter, status int, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}
