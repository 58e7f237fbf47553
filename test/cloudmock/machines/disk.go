package machines

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// disk is the real state of a disk.
type disk struct {
	handle string
	// attached is the machine that has the disk, or nil.
	attached *machine
	// mounts are the pods that can write, by UID.
	mounts map[types.UID]*pod
	// deletedWith is the machine whose deletion deleted the disk, or "".
	deletedWith string
}

// diskOf returns the disk of a handle. The caller holds the lock.
func (c *Cloud) diskOf(handle string) *disk {
	d := c.disks[handle]
	if d == nil {
		d = &disk{handle: handle, mounts: map[types.UID]*pod{}}
		c.disks[handle] = d
	}
	return d
}

// attach attaches a disk to a machine, unless another one has it.
func (c *Cloud) attach(handle string, m *machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.diskOf(handle)
	switch {
	case d.deletedWith != "":
		return fmt.Errorf("disk %s was deleted with machine %s", handle, d.deletedWith)
	case d.attached == m:
		return nil
	case d.attached != nil:
		return fmt.Errorf("disk %s is attached to machine %s", handle, d.attached.name)
	case m.power == instances.Gone:
		return fmt.Errorf("machine %s does not exist", m.name)
	}
	d.attached = m
	c.write(Event{Node: m.name, Volume: handle, Event: Attached})
	c.findWriters(d, m)
	return nil
}

// adopt takes over an attachment that an earlier process made.
func (c *Cloud) adopt(handle string, m *machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.diskOf(handle); d.attached == nil && d.deletedWith == "" && m.power != instances.Gone {
		d.attached = m
	}
}

// detach detaches a disk, mounted or not.
func (c *Cloud) detach(handle string, m *machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.has(DetachFails) {
		return fmt.Errorf("disk %s cannot be detached from machine %s", handle, m.name)
	}
	if d := c.diskOf(handle); d.attached == m {
		d.attached = nil
		c.write(Event{Node: m.name, Volume: handle, Event: Detached})
	}
	return nil
}

// mount lets a pod write to a disk. The caller holds the lock.
func (c *Cloud) mount(handle string, p *pod) {
	d := c.diskOf(handle)
	d.mounts[p.uid] = p
	c.write(p.event(Mounted, handle))
	c.findWriters(d, p.machine)
}

// unmount ends a mount. The caller holds the lock.
func (c *Cloud) unmount(handle string, p *pod) {
	d := c.diskOf(handle)
	if d.mounts[p.uid] == p {
		delete(d.mounts, p.uid)
		c.write(p.event(Unmounted, handle))
	}
}

// findWriters writes a line for each pod that has the disk mounted on a running machine other than m.
func (c *Cloud) findWriters(d *disk, m *machine) {
	for _, p := range d.mounts {
		if p.machine != m {
			c.write(p.event(TwoWriters, d.handle))
		}
	}
}

// dropMounts ends the mounts of a machine without power. The caller holds the lock.
func (c *Cloud) dropMounts(m *machine) {
	for _, d := range c.disks {
		for uid, p := range d.mounts {
			if p.machine == m {
				delete(d.mounts, uid)
			}
		}
	}
}

// dropDisks ends the attachments of a machine that no longer exists. The caller holds the lock.
func (c *Cloud) dropDisks(m *machine, deleteDisks bool) {
	for _, d := range c.disks {
		if d.attached != m {
			continue
		}
		d.attached = nil
		if deleteDisks {
			d.deletedWith = m.name
		}
		c.write(Event{Node: m.name, Volume: d.handle, Event: Detached})
	}
}
