package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// putAtOnce is how many values one transaction stores, below the limit of etcd, 128.
const putAtOnce = 100

// Put stores values, each a JSON object with its key, in the etcd at the endpoint. An API
// server tells its watchers of them as of its own.
func Put(ctx context.Context, endpoint string, values io.Reader) (err error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Context: ctx})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for decoder := json.NewDecoder(values); ; {
		puts, err := readPuts(decoder)
		if err != nil || len(puts) == 0 {
			return err
		}
		if _, err := client.Txn(ctx).Then(puts...).Commit(); err != nil {
			return fmt.Errorf("store values: %w", err)
		}
	}
}

// readPuts returns the operations of the next transaction, none at the end.
func readPuts(decoder *json.Decoder) (puts []clientv3.Op, err error) {
	for len(puts) < putAtOnce {
		var object struct {
			Key   string
			Value []byte
		}
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return puts, nil
		case err != nil:
			return nil, fmt.Errorf("read values: %w", err)
		case object.Key == "":
			return nil, errors.New("read values: one has no key")
		}
		puts = append(puts, clientv3.OpPut(object.Key, string(object.Value)))
	}
	return puts, nil
}
