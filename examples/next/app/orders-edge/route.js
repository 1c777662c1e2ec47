import { orders } from "../upstream.js";

export const runtime = "edge";
export const GET = () => orders();
