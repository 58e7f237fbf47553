package launcher

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

const (
	// serviceAddress is that of the service "kubernetes" in test/controlplane.
	serviceAddress = "10.0.0.1"
	// nodeAddress is the address of the Node object, podNetwork that of the pods.
	nodeAddress = "10.1.0.1"
	podNetwork  = "10.2.0.0/24"
)

// configureLoopback brings the loopback interface up, with the service address and the
// node's address.
func configureLoopback() (err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("configure loopback interface: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	for label, address := range map[string]string{"lo:1": serviceAddress, "lo:2": nodeAddress} {
		if err := addAddress(socket, label, address); err != nil {
			return fmt.Errorf("add address %s: %w", address, err)
		}
	}
	// The kernel gives the interface 127.0.0.1 when it comes up.
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	}
	if err != nil {
		return fmt.Errorf("bring loopback interface up: %w", err)
	}
	return nil
}

// addAddress adds an address, without a network, to an interface.
func addAddress(socket int, label, address string) error {
	request, err := unix.NewIfreq(label)
	if err != nil {
		return err
	}
	for _, setting := range []struct {
		request uint
		value   net.IP
	}{{unix.SIOCSIFADDR, net.ParseIP(address)}, {unix.SIOCSIFNETMASK, net.IPv4bcast}} {
		if err := request.SetInet4Addr(setting.value.To4()); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(socket, setting.request, request); err != nil {
			return err
		}
	}
	return nil
}
