// Listening on the wanted port, or on a free one when it is taken; and closing without waiting for idle connections.

export function listen(server, host, port) {
  return new Promise((resolve, reject) => {
    const attempt = (wanted) => {
      server.once("error", failed);
      server.listen(wanted, host, () => {
        server.off("error", failed);
        resolve(`http://${host}:${server.address().port}`);
      });
      function failed(error) {
        if (error.code === "EADDRINUSE" && wanted !== 0) attempt(0);
        else reject(error);
      }
    };
    attempt(port);
  });
}

export function shut(server) {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
